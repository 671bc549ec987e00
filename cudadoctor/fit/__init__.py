"""Whether a model fits into memory: what is counted, from the architecture and what frameworks do with it.

Pure: architecture and workload in, bytes out. Data flows one way:
names, configs, file headers -> Architecture; with a Workload -> Need (terms, intervals); against a Target -> Verdict,
and the cheapest changes. All sizes are bytes, as integers; they become GB or GiB only where they are shown.
"""
