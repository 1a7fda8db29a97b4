const INITIAL_CAPACITY_BITS = 10
/** A higher load causes long probe sequences. */
const MAX_LOAD_FACTOR = 0.6

/** A set of ids that takes about 16 bytes for each, outside the heap. A Set of numbers takes several times that. */
export class IdSet {
  // Open addressing. 0 marks a free slot, since ids begin at 1.
  #slots = new Float64Array(2 ** INITIAL_CAPACITY_BITS)
  #shift = 32 - INITIAL_CAPACITY_BITS
  #size = 0

  get size(): number {
    return this.#size
  }

  has(id: number): boolean {
    return this.#slots[this.#findSlot(id)] === id
  }

  /** Returns false if the set already has the id. */
  add(id: number): boolean {
    const slot = this.#findSlot(id)
    if (this.#slots[slot] === id) return false
    this.#slots[slot] = id
    if (++this.#size > this.#slots.length * MAX_LOAD_FACTOR) this.#grow()
    return true
  }

  #findSlot(id: number): number {
    const last = this.#slots.length - 1
    // Hashes the id, so that consecutive ids do not form long probe sequences.
    const mixed = id ^ Math.imul(Math.floor(id / 2 ** 32), 0x85ebca6b)
    let slot = Math.imul(mixed, 0x9e3779b1) >>> this.#shift
    for (;;) {
      const there = this.#slots[slot]
      if (there === 0 || there === id) return slot
      slot = (slot + 1) & last
    }
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new Float64Array(before.length * 2)
    this.#shift--
    for (const id of before) if (id !== 0) this.#slots[this.#findSlot(id)] = id
  }
}
