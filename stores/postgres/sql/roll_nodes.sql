SELECT node, incarnation, address, until FROM {nodes} ORDER BY node
