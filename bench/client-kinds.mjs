// The kinds of clients: the headers that each sends with every request, and with writes.
import { runProgram } from './processes.mjs'

const PUBLIC_HOST = 'records.example.org'
const CLIENT_ADDRESS = '203.0.113.7'
export const USER = { username: 'ada', password: 'a long and unused one' }

/** Real clients accept gzip. Here none does: the other servers do not compress, and zlib would take most of the time of a list. */
const ACCEPT_ENCODING = 'identity'

/** What Python's requests sends besides Host, except for the coding. */
const PROGRAM_HEADERS = {
  'user-agent': 'python-requests/2.32.5',
  'accept-encoding': ACCEPT_ENCODING,
  accept: '*/*',
}
const KEEP_ALIVE = { connection: 'keep-alive' }

/**
 * `open` takes { url, db, program } and returns { headers, writeHeaders }. A kind with `isProxied` needs a server that
 * trusts the proxy.
 */
export const CLIENTS = {
  cookie: { title: 'cookie', open: openProgram },
  key: { title: 'API key', open: openProgramWithKey },
  browser: { title: 'browser', open: openBrowser },
  proxy: { title: 'proxy', isProxied: true, open: openProxy },
}

export async function logIn(url, credentials = USER, headers = {}) {
  const response = await fetch(`${url}/callback`, {
    method: 'POST',
    body: JSON.stringify(credentials),
    headers: { 'content-type': 'application/json', ...headers },
  })
  if (!response.ok) throw new Error(`the login was answered with ${response.status}`)
  const cookies = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
  return { headers: { cookie: cookies.join('; ') } }
}

async function openProgram({ url }) {
  const { headers } = await logIn(url)
  return { headers: { ...PROGRAM_HEADERS, ...KEEP_ALIVE, ...headers } }
}

async function openProgramWithKey(server) {
  return { headers: { ...PROGRAM_HEADERS, ...KEEP_ALIVE, 'api-key': await addKey(server) } }
}

async function addKey({ db, program }) {
  const words = ['key', 'add', USER.username, '--name', `bench ${Date.now()}`, '--db', db]
  return (await runProgram(process.execPath, [program, ...words])).trim()
}

/** Chrome sends Sec-Fetch headers to https and to localhost, and Origin with requests that are not GET or HEAD. */
async function openBrowser({ url }) {
  const { headers } = await logIn(url)
  const origin = `http://localhost:${new URL(url).port}`
  return {
    headers: {
      host: new URL(origin).host,
      ...KEEP_ALIVE,
      'sec-ch-ua-platform': '"Linux"',
      'user-agent':
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
      accept: 'application/json, text/plain, */*',
      'sec-ch-ua': '"Chromium";v="156", "Google Chrome";v="156", "Not A(Brand";v="24"',
      'sec-ch-ua-mobile': '?0',
      'sec-fetch-site': 'same-origin',
      'sec-fetch-mode': 'cors',
      'sec-fetch-dest': 'empty',
      referer: `${origin}/contacts`,
      'accept-encoding': ACCEPT_ENCODING,
      'accept-language': 'en-GB,en;q=0.9',
      cookie: `theme=dark; ${headers.cookie}`,
    },
    writeHeaders: { origin },
  }
}

/** The headers that a proxy adds to those of a program with a cookie. */
async function openProxy({ url }) {
  const added = {
    'x-forwarded-for': CLIENT_ADDRESS,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': PUBLIC_HOST,
    'x-real-ip': CLIENT_ADDRESS,
    via: '1.1 proxy',
  }
  const { headers } = await logIn(url, USER, added)
  return { headers: { ...added, ...PROGRAM_HEADERS, ...headers } }
}
