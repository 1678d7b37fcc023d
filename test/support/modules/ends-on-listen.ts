import { subscribe } from 'node:diagnostics_channel'

/** `calm`, which receives SIGTERM as soon as it listens. */
subscribe('tracing:net.server.listen:asyncEnd', () => process.kill(process.pid, 'SIGTERM'))
await import('./calm.ts')
