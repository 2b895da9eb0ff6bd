// Lets the server soon detect a lost client host, and release its locks.

export const keepAliveSql = `SELECT set_config(name, wanted, false) FROM pg_settings JOIN (VALUES
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('client_connection_check_interval', '250')
  ) AS wanted (setting, wanted) ON name = wanted.setting`;
