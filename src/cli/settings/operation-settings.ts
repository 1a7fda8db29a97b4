// Settings for operators: what the service reports, and how it starts and stops.
import * as types from './setting-types.js'
import { SERVER_COMMANDS, type Setting } from './setting.js'

const LOG_FORMATS = ['auto', 'json', 'text'] as const
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export const OPERATION_SETTINGS = {
  logLevel: {
    group: 'logs',
    ...types.choice(LOG_LEVELS),
    commands: SERVER_COMMANDS,
    default: 'info',
    demoDefault: 'warn',
    devDefault: 'warn',
    description: 'Minimum level of log lines: fatal, error, warn, info, debug, trace or silent.',
  },
  logFormat: {
    group: 'logs',
    ...types.choice(LOG_FORMATS),
    commands: SERVER_COMMANDS,
    default: 'auto',
    description:
      'Format of log lines on stderr: json, text, or auto, which is text on a terminal and json otherwise.',
  },
  metricsPort: {
    group: 'logs',
    ...types.boundedInteger(0, 65_535),
    commands: SERVER_COMMANDS,
    description:
      'Serve metrics for Prometheus at /metrics on this port. 0 chooses a free port and prints it. Without it nothing is measured.',
  },
  metricsHost: {
    group: 'logs',
    ...types.host,
    commands: SERVER_COMMANDS,
    default: 'localhost',
    description:
      'The address to serve metrics on. Everybody who reaches it can read them, so choose another only in a private network, such as that of a container.',
  },
  diskReserve: {
    group: 'data',
    ...types.byteSize('0kb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '16mb',
    demoDefault: '0',
    devDefault: '0',
    description:
      'Size of the file that keeps room for logins and deletes on a full disk (SQLite only). 0 keeps none.',
  },
  drain: {
    group: 'address',
    ...types.duration('0s', '10m'),
    commands: SERVER_COMMANDS,
    default: '5s',
    demoDefault: '0s',
    devDefault: '0s',
    description:
      'After a signal to stop, accept requests for this long while /readyz is 503, so that a load balancer notices.',
  },
  backupEvery: {
    group: 'data',
    ...types.duration('1s', '30d'),
    commands: ['serve'],
    description: 'Makes and verifies a backup at this interval, such as 6h.',
  },
  backupKeep: {
    group: 'data',
    ...types.boundedInteger(1, 10_000),
    commands: ['serve'],
    default: '28',
    description: 'Number of verified backups to keep; older ones are deleted.',
  },
  backupFolder: {
    group: 'data',
    ...types.fileOrFolder,
    commands: ['serve'],
    default: 'backups',
    description: 'Folder of the scheduled backups. It is created with mode 0700.',
  },
  quickCheckSize: {
    group: 'data',
    ...types.byteSize('0kb', '1000gb'),
    commands: SERVER_COMMANDS,
    default: '1gb',
    description: 'After an unclean stop, check the pages of a database file up to this size (SQLite only).',
  },
  quickCheckTime: {
    group: 'data',
    ...types.duration('0s', '24h'),
    commands: SERVER_COMMANDS,
    default: '30s',
    description:
      'Stop the check after an unclean stop after this time; requests do not wait for it. 0s disables it.',
  },
} as const satisfies Record<string, Setting<unknown>>
