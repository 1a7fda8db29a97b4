// The offices that Verso holds beside the contacts: a small table, whose lists cost little besides the request itself.
import { writeFileSync } from 'node:fs'

export const OFFICE_MODEL = 'bench.Office'
/** One third of the offices, and of a filtered list. */
export const OFFICE_COUNTRY = 'Norway'

const CITIES = [
  ...['Zagreb', 'Bergen', 'Lisbon', 'Aarhus', 'Turin', 'Malmo', 'Krakow', 'Ghent', 'Porto', 'Vienna'],
  ...['Lyon', 'Tartu', 'Basel'],
]
const COUNTRIES = [OFFICE_COUNTRY, 'Portugal', 'Austria']
export const OFFICES = CITIES.map((city, index) => ({
  id: index + 1,
  name: `Office ${city}`,
  city,
  country: COUNTRIES[index % COUNTRIES.length],
}))

/** Writes lines for `verso import`, with ids. */
export function writeOffices(file) {
  writeFileSync(file, OFFICES.map((office) => `${JSON.stringify({ version: 0, ...office })}\n`).join(''))
}
