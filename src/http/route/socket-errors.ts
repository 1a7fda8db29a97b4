// Answers malformed or late HTTP on the socket, because such a request never reaches a route.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorKind } from '../../errors.js'
import { SECURITY_HEADERS } from '../response/headers.js'
import { JSON_TYPE } from '../response/send.js'

type SocketError = readonly [statusLine: string, kind: ErrorKind, message: string]

const LATE_REQUEST = 'ERR_HTTP_REQUEST_TIMEOUT'
/** Errors of Node's HTTP parser by code. */
const SOCKET_ERRORS: Readonly<Record<string, SocketError>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'too-large',
    'The request headers are too large',
  ],
  [LATE_REQUEST]: [
    '408 Request Timeout',
    'bad-request',
    'The request did not arrive in time; nothing was changed',
  ],
}
/** All other errors of the parser. */
const NOT_HTTP_ERROR: SocketError = ['400 Bad Request', 'bad-request', 'Malformed HTTP request']
const SECURITY_HEADER_LINES = Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`)
/** A socket that closes while the client still sends resets the connection, perhaps before the client has read the response. */
const LINGER_MS = 1_000

/** Sends the error after the responses to the earlier requests on the connection. */
export function sendSocketError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === LATE_REQUEST) stopReading(socket)
  const response = readCurrentResponse(socket)
  if (response?.req.complete) {
    response.once('close', () => {
      sendSocketError(error, socket)
    })
    return
  }
  if (!socket.writable) return
  if (response?.headersSent) {
    // The response to a request whose body is late has begun, so there is no place for an error.
    socket.destroy()
    return
  }
  const [status, kind, message] = SOCKET_ERRORS[error.code ?? ''] ?? NOT_HTTP_ERROR
  const body = JSON.stringify({ status: -1, data: { kind, title: status.slice(4), message } })
  const head = [
    `HTTP/1.1 ${status}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...SECURITY_HEADER_LINES,
  ]
  socket.end(`${head.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`, () => {
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  })
}

/** The rest of a late request may arrive after all. It must not be carried out. The handler of the request may resume the socket. */
function stopReading(socket: Socket): void {
  socket.pause().on('resume', () => socket.pause())
}

/** The response that the socket sends or waits for. Node's own listener for such errors reads it in the same way. */
function readCurrentResponse(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}
