// Runs one event through one bundle, as a fresh sandbox would: `node driver.mjs <bundle> <event as JSON>`. Plain
// JavaScript, so that no type stripping is measured.
import { pathToFileURL } from 'node:url'

const [bundle, event] = process.argv.slice(2)
const { handler } = await import(pathToFileURL(bundle))
const answer = await handler(JSON.parse(event))
const { user, system } = process.cpuUsage()
const resident = process.memoryUsage.rss()
process.stdout.write(`\nanswered ${answer?.statusCode ?? 200} after ${user + system} µs in ${resident} bytes\n`, () =>
  process.exit(),
)
