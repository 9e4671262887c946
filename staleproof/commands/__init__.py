"""Commands of the command line, one module each, imported only when the command is used.

add_arguments(parser)   adds the command's options; imports no numerical library (tested)
run(args) -> int        does the work and returns the exit code
"""
