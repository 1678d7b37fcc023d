import { subscribe } from 'node:diagnostics_channel'

subscribe('tracing:net.server.listen:asyncEnd', () => process.kill(process.pid, 'SIGTERM'))
await import('./calm.ts')
