import { createServer } from 'node:http'

/** The description is valid, except for the id of a slot: arrays nested 100,000 levels deep. */
const nestedArrays = '['.repeat(100_000) + ']'.repeat(100_000)
const identity = { sdkVersion: '0.3.0', id: 'answers-deep', version: '1.0.0', state: 'Loading' }
const otherFields = { healthChecks: [], jobs: [], subscriptions: [] }
const description = `${JSON.stringify({ ...identity, ...otherFields }).slice(0, -1)},"slots":[{"id":${nestedArrays}}]}`
createServer((_incoming, outgoing) => {
  outgoing.end(description)
}).listen(process.env['PLATFORM_SOCKET'])
