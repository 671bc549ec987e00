__version__ = "2.9.1+cu128"
debug = False
cuda = "12.8"
git_version = "0" * 40
hip = None
