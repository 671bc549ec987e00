"""Text and bytes -> values. Pure: nothing here looks at the machine.

One module for each subject; its first lines show the text that it reads. What a parser cannot read is ParseError, or
the None or the shorter result that its docstring names. Regular expressions stand where they are the clearest and off
the path of an ordinary check: compiling one takes longer than reading most files here.
"""
