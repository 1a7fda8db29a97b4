// The contacts that every server holds. Equal numbers give equal contacts.
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'

export const MODEL = 'bench.Contact'
export const FIELDS = ['firstName', 'lastName', 'fullName', 'email', 'phone', 'dateOfBirth', 'notes']

const FIRST_NAMES = [
  'Ada',
  'Grace',
  'Alan',
  'Edsger',
  'Barbara',
  'Donald',
  'Frances',
  'Niklaus',
  'Radia',
  'Ken',
]
const LAST_NAMES = [
  'Harper',
  'Okafor',
  'Lindqvist',
  'Moreau',
  'Tanaka',
  'Novak',
  'Silva',
  'Brandt',
  'Ivanova',
]
const NOTES = ['met at the fair in spring', 'prefers letters to calls', 'asked for the new price list']

/** Builds contact number `index`, counted from 0; its id is `index` + 1. */
export function buildContact(index) {
  const firstName = FIRST_NAMES[index % FIRST_NAMES.length]
  const lastName = LAST_NAMES[index % LAST_NAMES.length]
  return {
    firstName,
    lastName,
    email: `${firstName}.${lastName}.${index}@example.org`.toLowerCase(),
    phone: formatPhone(index),
    dateOfBirth: `19${padTwo(50 + (index % 50))}-${padTwo(1 + (index % 12))}-${padTwo(1 + (index % 28))}`,
    notes: `${NOTES[index % NOTES.length]}; customer number ${100_000 + index}`,
  }
}

/** Builds the contact for servers without computed fields. */
export function buildFullContact(index) {
  const { firstName, lastName, ...rest } = buildContact(index)
  return { firstName, lastName, fullName: formatFullName({ firstName, lastName }), ...rest }
}

export function formatFullName({ firstName, lastName }) {
  return [firstName, lastName].filter(Boolean).join(' ')
}

export function formatPhone(number) {
  return `+1 202 ${String(Math.floor(number / 10_000) % 1_000).padStart(3, '0')} ${String(number % 10_000).padStart(4, '0')}`
}

/** Writes lines for `verso import`, with ids. */
export async function writeLines(file, rows) {
  const stream = createWriteStream(file)
  for (let index = 0; index < rows; index++) {
    const line = JSON.stringify({ id: index + 1, version: 0, ...buildContact(index) })
    if (!stream.write(`${line}\n`)) await once(stream, 'drain')
  }
  stream.end()
  await finished(stream)
}

function padTwo(number) {
  return String(number).padStart(2, '0')
}
