import { claimSearches, openWorlds } from './search-claims.js'

openWorlds()
claimSearches({ related: 1_500, values: 400, archived: 150 })
