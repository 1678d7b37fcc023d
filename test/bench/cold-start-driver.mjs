// Sends one event to one bundle: `node cold-start-driver.mjs <bundle> <event as JSON>`. Plain JavaScript, so that no type
// stripping is measured.
import { pathToFileURL } from 'node:url'

const [bundle, event] = process.argv.slice(2)
const { handler } = await import(pathToFileURL(bundle))
const response = await handler(JSON.parse(event))
const { user, system } = process.cpuUsage()
const report = `\nstatus ${response?.statusCode ?? 200} cpu ${user + system} rss ${process.memoryUsage.rss()}\n`
process.stdout.write(report, () => process.exit())
