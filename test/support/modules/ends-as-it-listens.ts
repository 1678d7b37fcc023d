import { subscribe } from 'node:diagnostics_channel'

/** `calm`, told to end in the very moment from which on it can be reached. */
subscribe('tracing:net.server.listen:asyncEnd', () => process.kill(process.pid, 'SIGTERM'))
await import('./calm.ts')
