// Runs for each file of tests: a service that fails fails the test, whatever the test looks at.
import { afterAll, afterEach } from 'vitest'
import { failIfUnexpected } from './server-failures.js'

afterEach(failIfUnexpected)
// Services are closed after the last test.
afterAll(failIfUnexpected)
