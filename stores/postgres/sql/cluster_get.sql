SELECT revision, value FROM {cluster} WHERE key = $1::text
