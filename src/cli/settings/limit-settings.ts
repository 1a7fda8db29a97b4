// Settings that limit what one request, account or process may take.
import * as types from './setting-types.js'
import { SERVER_COMMANDS, type Setting } from './setting.js'

export const LIMIT_SETTINGS = {
  bodyLimit: {
    group: 'limits',
    ...types.byteSize('1kb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '2mb',
    description: 'Maximum size of a request body. Larger ones get 413.',
  },
  uploadLimit: {
    group: 'limits',
    ...types.byteSize('1kb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '25mb',
    description: 'Maximum size of an uploaded file. Larger ones get 413.',
  },
  rateLimit: {
    group: 'limits',
    ...types.boundedInteger(0, 1_000_000_000),
    commands: SERVER_COMMANDS,
    default: '300000',
    demoDefault: '0',
    devDefault: '0',
    description:
      'Requests per minute and node for each account, and for each address without an account. Further requests get 429. 0 disables the limit.',
  },
  maxConcurrentRequests: {
    group: 'limits',
    ...types.boundedInteger(1, 1_000_000),
    commands: SERVER_COMMANDS,
    default: '1024',
    description: 'Maximum number of concurrent requests. Further requests get 503.',
  },
  maxEventLoopDelay: {
    group: 'limits',
    ...types.duration('0s', '1h'),
    commands: SERVER_COMMANDS,
    default: '100ms',
    demoDefault: '0s',
    devDefault: '0s',
    description:
      'How long requests may wait for the event loop. While they wait longer, there or in a queue of the database, those that cannot be answered soon get 503. 0s refuses none.',
  },
  maxConnections: {
    group: 'limits',
    ...types.boundedInteger(1, 1_000_000),
    commands: SERVER_COMMANDS,
    default: '10000',
    description: 'Maximum number of open connections. Further connections are closed.',
  },
  maxPageSize: {
    group: 'limits',
    ...types.boundedInteger(1, 100_000),
    commands: SERVER_COMMANDS,
    default: '1000',
    description: 'Maximum number of records on a page. A larger limit in a request is lowered to it.',
  },
  responseLimit: {
    group: 'limits',
    ...types.byteSize('1mb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '32mb',
    description:
      'Maximum size of a response with records. Larger pages get 413; larger responses to writes have only ids and versions.',
  },
  statementTimeout: {
    group: 'limits',
    ...types.duration('10ms', '1h'),
    commands: SERVER_COMMANDS,
    default: '10s',
    description:
      'Time limit of a search, and on PostgreSQL of every statement. A request that exceeds it gets 503.',
  },
} as const satisfies Record<string, Setting<unknown>>
