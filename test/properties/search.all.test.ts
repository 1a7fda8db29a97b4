import { claimSearches, openDatasets } from './search-claims.js'

openDatasets()
claimSearches({ related: 700, values: 250, archived: 100 })
