import { claimSearches, openDatasets } from './search-claims.js'

openDatasets()
claimSearches({ related: 1_500, values: 400, archived: 150 })
