// The rules of the guide "Rules of your own" hold when many clients write at the same time.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadCatalogSources } from '../../src/cli/models/models.js'
import { VersoError } from '../../src/errors.js'
import type { Records } from '../../src/wire.js'
import { readSteps } from '../docs/page.js'
import { enter, onEveryEngine, startService, type Engine, type Service } from '../targets.js'

const GUIDE = 'docs/guides/rules.md'
const CLIENTS = 20
const PRICE = 2_500

interface Shop {
  readonly service: Service
  readonly records: Records
}

/** Starts a service with the models of the guide. `change` makes a mutant of their text. */
async function startShop(engine: Engine, change = (text: string) => text): Promise<Shop> {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-guide-'))
  try {
    for (const { path: name = '', text } of readSteps(GUIDE)) {
      if (!/^(models|mail)\//.test(name)) continue
      mkdirSync(path.join(folder, path.dirname(name)), { recursive: true })
      writeFileSync(path.join(folder, name), change(text))
    }
    const { sources, errors } = await loadCatalogSources(path.join(folder, 'models'))
    expect(errors).toEqual([])
    const service = await startService(engine, { models: sources })
    return { service, records: await enter(service, 'http') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

let codes = 0

async function createProduct({ records }: Shop, stock: number): Promise<number> {
  const product = { code: `LMP-${++codes}`, name: 'Lamp', price: PRICE, stock }
  return (await records.create('shop.Product', product)).data.id
}

async function createCustomer({ records }: Shop, creditLimit: number): Promise<number> {
  const customer = { name: 'Ada', email: 'ada@example.org', creditLimit }
  return (await records.create('shop.Customer', customer)).data.id
}

async function createOrder({ records }: Shop, customer: number, products: readonly number[]) {
  const lines = products.map((id) => ({ product: { id }, quantity: 1 }))
  return records.create('shop.Order', { customer: { id: customer }, lines })
}

async function readValue({ records }: Shop, model: string, id: number, field: string): Promise<unknown> {
  return (await records.read(model, id))[field]
}

/** Runs the work of all clients at the same time. Returns the number of successes and the field errors of the others. */
async function runClients(work: (client: number) => Promise<unknown>) {
  const results = await Promise.allSettled(Array.from({ length: CLIENTS }, (_, client) => work(client)))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  const fields = errors.map((error) =>
    error instanceof VersoError ? `${error.kind} ${Object.keys(error.details.errors ?? {}).join()}` : error,
  )
  return { succeeded: CLIENTS - errors.length, refused: [...new Set(fields)] }
}

/** Adds a piece to each order of a customer. The credit limit is enough for one of the additions. */
async function exceedCreditLimit(shop: Shop) {
  const customer = await createCustomer(shop, (CLIENTS + 1) * PRICE)
  const lines: number[] = []
  for (let client = 0; client < CLIENTS; client++) {
    const { data } = await createOrder(shop, customer, [await createProduct(shop, 2)])
    lines.push(...(data['lines'] as readonly { readonly id: number }[]).map(({ id }) => id))
  }
  return runClients((client) =>
    shop.records.update('shop.OrderLine', lines[client] ?? 0, { version: 0, quantity: 2 }),
  )
}

onEveryEngine((engine) => {
  let shop: Shop

  beforeAll(async () => {
    shop = await startShop(engine)
  })
  afterAll(() => shop.service.close())

  test('orders at the same time reserve all of the stock, and no more', async () => {
    const customer = await createCustomer(shop, 1_000_000)
    const product = await createProduct(shop, 10)
    const { succeeded, refused } = await runClients(() => createOrder(shop, customer, [product]))
    expect(succeeded).toBe(10)
    expect(refused).toEqual([expect.stringMatching(/^invalid .*lines\[0\]\.quantity/)])
    expect(await readValue(shop, 'shop.Product', product, 'reserved')).toBe(10)
  })

  test('changes of orders at the same time use all of the credit limit, and no more', async () => {
    expect(await exceedCreditLimit(shop)).toEqual({ succeeded: 1, refused: ['invalid total'] })
  })

  test('orders that lock the same products in opposite orders all succeed', async () => {
    const products = [await createProduct(shop, 100), await createProduct(shop, 100)]
    const customer = await createCustomer(shop, 1_000_000)
    const reversed = [...products].reverse()
    const { refused } = await runClients((client) =>
      // Few at the same time: a transaction is retried only a few times after deadlocks.
      client < 4 ? createOrder(shop, customer, client % 2 === 0 ? products : reversed) : Promise.resolve(),
    )
    expect(refused).toEqual([])
    for (const id of products) expect(await readValue(shop, 'shop.Product', id, 'reserved')).toBe(4)
  })

  test('lines that are added to one order at the same time are all in its total', async () => {
    const customer = await createCustomer(shop, 1_000_000)
    const product = await createProduct(shop, 100)
    const { data } = await createOrder(shop, customer, [])
    const { succeeded, refused } = await runClients(() =>
      shop.records.create('shop.OrderLine', {
        order: { id: data.id },
        product: { id: product },
        quantity: 1,
      }),
    )
    expect(refused).toEqual([])
    expect(await readValue(shop, 'shop.Order', data.id, 'total')).toBe(succeeded * PRICE)
  })

  // SQLite has one writer at a time, so it does not need the lock.
  if (engine === 'postgres')
    test('the mutant credit limit without the lock is exceeded', async () => {
      const mutant = await startShop(engine, removeCustomerLock)
      try {
        expect((await exceedCreditLimit(mutant)).succeeded).toBeGreaterThan(1)
      } finally {
        await mutant.service.close()
      }
    })
})

/** Two transactions that add a piece both read the orders of the customer before one of them writes. */
function removeCustomerLock(text: string): string {
  const waitForSecond = `if (after.total > ${PRICE}) globalThis.additions = (globalThis.additions ?? 0) + 1
    while (globalThis.additions === 1) await system.of(Order).find({ limit: 1 })
    const left =`
  return text.replace('.of(Customer).lock(', '.of(Customer).read(').replace('const left =', waitForSecond)
}
