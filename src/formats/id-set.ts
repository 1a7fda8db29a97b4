const FIRST_BITS = 10
/** Fuller than this, places are hard to find. */
const MAX_LOAD = 0.6

/** Ids in about 16 bytes each, outside of the heap: a Set of numbers takes several times that. */
export class IdSet {
  // Open addressing; 0 is a free place, since ids begin at 1.
  #places = new Float64Array(2 ** FIRST_BITS)
  #shift = 32 - FIRST_BITS
  #size = 0

  get size(): number {
    return this.#size
  }

  has(id: number): boolean {
    return this.#places[this.#placeOf(id)] === id
  }

  /** False if it was in it already. */
  add(id: number): boolean {
    const place = this.#placeOf(id)
    if (this.#places[place] === id) return false
    this.#places[place] = id
    if (++this.#size > this.#places.length * MAX_LOAD) this.#grow()
    return true
  }

  #placeOf(id: number): number {
    const last = this.#places.length - 1
    // Neighbouring ids would stand side by side and make long rows: they are scattered.
    const mixed = id ^ Math.imul(Math.floor(id / 2 ** 32), 0x85ebca6b)
    let place = Math.imul(mixed, 0x9e3779b1) >>> this.#shift
    for (;;) {
      const there = this.#places[place]
      if (there === 0 || there === id) return place
      place = (place + 1) & last
    }
  }

  #grow(): void {
    const before = this.#places
    this.#places = new Float64Array(before.length * 2)
    this.#shift--
    for (const id of before) if (id !== 0) this.#places[this.#placeOf(id)] = id
  }
}
