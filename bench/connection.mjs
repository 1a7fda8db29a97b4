// A keep-alive connection with one request in flight. It parses only what it needs to find the end of a response.
import { connect } from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')
/** Bodies are JSON, which cannot contain these bytes. */
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')
const LENGTH = /\r\ncontent-length: *(\d+)/i
const CHUNKED = /\r\ntransfer-encoding: *chunked/i
const CLOSING = /\r\nconnection: *close/i
const STATUS_AT = 'HTTP/1.1 '.length

export class Connection {
  #address
  #socket
  #onAnswer
  #onLost
  #isAsking = false
  #isEnded = false
  #rest
  /** Bytes of the whole response; 0 until the length is known. */
  #length = 0

  /** `onAnswer(status, bytes)` gets the whole response, head and body. */
  constructor(url, { onAnswer, onLost }) {
    const { hostname, port } = new URL(url)
    this.#address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), noDelay: true }
    this.#onAnswer = onAnswer
    this.#onLost = onLost
    this.#open()
  }

  send(bytes) {
    this.#isAsking = true
    this.#socket.write(bytes)
  }

  end() {
    this.#isEnded = true
    this.#socket.destroy()
  }

  #open() {
    const socket = connect(this.#address)
    this.#socket = socket
    socket.on('data', (chunk) => this.#take(chunk))
    // The event `close` follows.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      if (this.#isEnded || this.#socket !== socket) return
      this.#reopen()
    })
  }

  #reopen() {
    this.#rest = undefined
    this.#length = 0
    this.#open()
    if (!this.#isAsking) return
    this.#isAsking = false
    // Once: a connection that has been opened can fail later, with or without a request.
    const settle = () => {
      socket.off('ready', settle).off('error', settle)
      this.#onLost()
    }
    const socket = this.#socket.on('ready', settle).on('error', settle)
  }

  #take(chunk) {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    this.#rest = bytes
    if (bytes.length < this.#length) return
    const headEnd = bytes.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = bytes.latin1Slice(0, headEnd)
    if (!this.#isWhole(bytes, head, headEnd + HEAD_END.length)) return
    this.#rest = undefined
    this.#length = 0
    this.#isAsking = false
    // The server closes the connection after this response, so open another one.
    if (CLOSING.test(head)) this.#replace()
    this.#onAnswer(Number(head.slice(STATUS_AT, STATUS_AT + 3)), bytes)
  }

  #isWhole(bytes, head, bodyAt) {
    const length = LENGTH.exec(head)
    if (length) {
      this.#length = bodyAt + Number(length[1])
      return bytes.length >= this.#length
    }
    if (CHUNKED.test(head)) return bytes.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
    return true
  }

  #replace() {
    this.#socket.destroy()
    this.#open()
  }
}
