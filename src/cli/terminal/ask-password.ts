import { text as readAll } from 'node:stream/consumers'
import { StartFaults } from '../../errors.js'
import { MIN_PASSWORD_LENGTH } from '../../model/catalog/auth-models.js'

/** From standard input if told so, else typed twice, unseen. */
export async function askPassword(username: string, fromStdin = false): Promise<string> {
  if (fromStdin) {
    const given = (await readAll(process.stdin)).replace(/\r?\n$/, '')
    if (given === '') throw new StartFaults('Nothing was changed', ['no password came on standard input'])
    return given
  }
  if (!process.stdin.isTTY) {
    throw new StartFaults('There is no terminal to ask for the password', [
      'send it with: --password-stdin < file',
    ])
  }
  const first = await typed(`Password of ${username}, at least ${MIN_PASSWORD_LENGTH} characters`)
  if ((await typed('The same again')) === first) return first
  throw new StartFaults('Nothing was changed', ['the two passwords differ'])
}

async function typed(message: string): Promise<string> {
  const { isCancel, password } = await import('@clack/prompts')
  const answer = await password({ message })
  if (isCancel(answer)) throw new StartFaults('Nothing was changed', ['no password was given'])
  return answer
}
