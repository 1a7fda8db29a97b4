import { expect, test } from 'vitest'
import { parseAgent } from '../../admin/account/agent.js'

const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36'

test.each([
  [CHROME, 'Chrome', 'Linux'],
  [`${CHROME.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64')} Edg/147.0.0.0`, 'Edge', 'Windows'],
  ['Mozilla/5.0 (Windows NT 10.0; rv:150.0) Gecko/20100101 Firefox/150.0', 'Firefox', 'Windows'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1',
    'Safari',
    'iPhone',
  ],
  [
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/147.0.0.0 Mobile Safari/537.36',
    'Chrome',
    'Android',
  ],
  ['curl/8.5.0', 'curl', undefined],
])('the agent %s is named', (agent, program, system) => {
  expect(parseAgent(agent)).toEqual({ program, system })
})

test.each([null, undefined, '', '  ', '/'])('the agent %j has no name', (agent) => {
  expect(parseAgent(agent)).toBeUndefined()
})
