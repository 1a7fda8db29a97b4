import { text as readAll } from 'node:stream/consumers'
import { ConfigError } from '../../errors.js'
import { MIN_PASSWORD_CHARACTERS } from '../../model/catalog/auth-models.js'

/** Reads the password from standard input, or prompts for it twice without echo. */
export async function readPassword(username: string, fromStdin = false): Promise<string> {
  if (fromStdin) {
    const password = (await readAll(process.stdin)).replace(/\r?\n$/, '')
    if (password === '') throw new ConfigError('Nothing was changed', ['no password came on standard input'])
    return password
  }
  if (!process.stdin.isTTY) {
    throw new ConfigError('There is no terminal to ask for the password', [
      'send it with: --password-stdin < file',
    ])
  }
  const first = await promptPassword(
    `Password of ${username}, at least ${MIN_PASSWORD_CHARACTERS} characters`,
  )
  if ((await promptPassword('The same again')) === first) return first
  throw new ConfigError('Nothing was changed', ['the two passwords differ'])
}

async function promptPassword(message: string): Promise<string> {
  const { isCancel, password } = await import('@clack/prompts')
  const answer = await password({ message })
  if (isCancel(answer)) throw new ConfigError('Nothing was changed', ['no password was given'])
  return answer
}
