// The models of a small shop, and a service in the compatibility mode that the clients need.
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Compatibility } from '../../src/http/compat/protocol.js'
import { startService, type Engine, type Service } from '../targets.js'

const Partner = defineModel({
  name: 'com.example.shop.db.Partner',
  fields: {
    name: { type: 'string', required: true, title: 'Name' },
    code: { type: 'string', unique: true },
    isCustomer: { type: 'boolean', default: true },
    orders: { type: 'one-to-many', target: 'com.example.shop.db.Order', mappedBy: 'partner' },
  },
})

const Tag = defineModel({
  name: 'com.example.shop.db.Tag',
  fields: { name: { type: 'string', required: true } },
})

const Order = defineModel({
  name: 'com.example.shop.db.Order',
  fields: {
    reference: { type: 'string', required: true, unique: true },
    status: {
      type: 'integer',
      selection: [
        { value: 1, title: 'Draft' },
        { value: 2, title: 'Confirmed' },
        { value: 3, title: 'Delivered' },
      ],
      default: 1,
    },
    partner: { type: 'many-to-one', target: 'com.example.shop.db.Partner' },
    orderDate: { type: 'date' },
    confirmedOn: { type: 'datetime' },
    total: { type: 'decimal', precision: 20, scale: 3 },
    tags: { type: 'many-to-many', target: 'com.example.shop.db.Tag' },
    lines: { type: 'one-to-many', target: 'com.example.shop.db.Line', mappedBy: 'order', owned: true },
  },
  nameField: 'reference',
  listFields: ['reference', 'status', 'partner'],
})

const Line = defineModel({
  name: 'com.example.shop.db.Line',
  fields: {
    product: { type: 'string', required: true },
    quantity: { type: 'integer', default: 1 },
    order: { type: 'many-to-one', target: 'com.example.shop.db.Order', required: true },
  },
  nameField: 'product',
})

export const PARTNER = Partner.name
export const ORDER = Order.name
export const LINE = Line.name
export const TAG = Tag.name

const models: readonly ModelSource[] = [Partner, Tag, Order, Line].map((definition) => ({
  file: 'test/clients/shop.ts',
  definition,
}))

export async function openShop(engine: Engine, compat: Compatibility = 'axelor'): Promise<Service> {
  return startService(engine, { models, http: { compat, basicAuth: compat === 'axelor' } })
}

/** A response as all of these clients read it. */
export interface Answer<T = Readonly<Record<string, unknown>>> {
  readonly status: number
  readonly offset?: number
  readonly total?: number
  readonly data?: readonly T[]
  readonly errors?: Readonly<Record<string, string>>
}

export interface Saved {
  readonly id: number
  readonly version: number
  readonly [field: string]: unknown
}

/** An error message that a client shows to its user. */
export class ClientError extends Error {}
