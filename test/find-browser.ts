// Prints the browser that the tests would use, or fails with the reasons why none starts. Usage: npx jiti test/find-browser.ts
import { launchBrowser } from './browser-program.js'

const { browser, failures } = await launchBrowser()
if (browser) {
  process.stdout.write(`Chromium ${browser.version()}\n`)
  await browser.close()
} else {
  process.stdout.write(`No browser starts on this machine.\n${failures.join('\n')}\n`)
  process.exitCode = 1
}
