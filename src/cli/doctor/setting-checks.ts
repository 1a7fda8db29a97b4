// Checks the settings, as `serve` reads them, and the models.
import { ConfigError } from '../../errors.js'
import { isLoopback } from '../../http/connection/loopback.js'
import { createDiagnosis, type Diagnosis } from '../../store/diagnosis/diagnosis.js'
import { loadCatalog } from '../models/models.js'
import { readSettings, type Environment, type Flags } from '../settings/read-settings.js'
import type { SettingValues } from '../settings/settings.js'
import { describeFailure } from '../terminal/failure-text.js'

export interface ReadSettings {
  /** Undefined if the settings are wrong. */
  readonly values: SettingValues | undefined
  readonly diagnoses: readonly Diagnosis[]
}

export function diagnoseSettings(flags: Flags, environment: Environment): ReadSettings {
  try {
    const values = readSettings('serve', flags, environment)
    return {
      values,
      diagnoses: [createDiagnosis('settings', 'ok', 'serve accepts them'), ...diagnoseAddress(values)],
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const advice = 'Correct the flag, the variable, or the line in .env.'
    return {
      values: undefined,
      diagnoses: error.errors.map((each) => createDiagnosis('settings', 'problem', each, advice)),
    }
  }
}

function diagnoseAddress({ host, publicUrl, trustProxy }: SettingValues): Diagnosis[] {
  const isHttps = publicUrl?.startsWith('https:') === true
  if (isHttps && trustProxy === undefined)
    return [
      createDiagnosis(
        'proxy settings',
        'warning',
        'users reach the service by https, but it trusts no proxy: cookies are not Secure, and limits count all users as one',
        'Set VERSO_TRUST_PROXY to the address of the proxy, or to loopback.',
      ),
    ]
  if (trustProxy !== undefined && publicUrl === undefined)
    return [
      createDiagnosis(
        'proxy settings',
        'warning',
        'the service trusts a proxy, but does not know the URL that users see',
        'Set VERSO_PUBLIC_URL, so that links and the checks of hosts are right.',
      ),
    ]
  if (!isLoopback(host) && !isHttps)
    return [
      createDiagnosis(
        'proxy settings',
        'warning',
        `the service listens on ${host} without https: passwords pass the network readable`,
        'Put a proxy with TLS in front of it, and set VERSO_PUBLIC_URL and VERSO_TRUST_PROXY.',
      ),
    ]
  return [
    createDiagnosis(
      'proxy settings',
      'ok',
      'the address, the public URL and the trusted proxies fit together',
    ),
  ]
}

/** Loads the models as `serve` does: their code runs. */
export async function diagnoseModels(models: string): Promise<Diagnosis> {
  try {
    const { storedModels } = await loadCatalog(models)
    return createDiagnosis('models', 'ok', `${storedModels.length} models are valid`)
  } catch (error) {
    const [message = ''] = describeFailure(error).split('\n  - ').slice(-1)
    return createDiagnosis(
      'models',
      'problem',
      message.replaceAll('\n', ' '),
      'For all errors, run: verso schema',
    )
  }
}
