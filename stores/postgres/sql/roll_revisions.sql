SELECT key, revision FROM {cluster} ORDER BY key
