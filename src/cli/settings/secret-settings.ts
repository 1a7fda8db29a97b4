// Settings that hold a secret. They are environment variables only: other users of a computer can see flags.
import * as types from './setting-types.js'
import type { Setting } from './setting.js'

export const SECRET_SETTINGS = {
  adminPassword: {
    group: 'access',
    ...types.password,
    commands: ['serve', 'dev'],
    isVariableOnly: true,
    description:
      'Password of the first administrator, called admin, who is created if there is no administrator.',
  },
  fromPassword: {
    group: 'other',
    ...types.anyPassword,
    commands: ['import'],
    isVariableOnly: true,
    description: 'Password for the service that `--from` names.',
  },
  provePassword: {
    group: 'other',
    ...types.anyPassword,
    commands: ['prove'],
    isVariableOnly: true,
    description: 'Password of the user that `--user` names.',
  },
  proveKey: {
    group: 'other',
    ...types.anyPassword,
    commands: ['prove'],
    isVariableOnly: true,
    description: 'API key for the service that `--url` names.',
  },
  doctorPassword: {
    group: 'other',
    ...types.anyPassword,
    commands: ['doctor'],
    isVariableOnly: true,
    description: 'Password of the user that `--user` names.',
  },
  typesPassword: {
    group: 'other',
    ...types.anyPassword,
    commands: ['types'],
    isVariableOnly: true,
    description: 'Password of the user that `--user` names.',
  },
  typesKey: {
    group: 'other',
    ...types.anyPassword,
    commands: ['types'],
    isVariableOnly: true,
    description: 'API key for the service that `--url` names.',
  },
} as const satisfies Record<string, Setting<unknown>>
