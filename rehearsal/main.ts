import { functionsDir } from '../scripts/deploy/build.ts'
import { startRehearsal } from './rehearsal.ts'

const rehearsal = await startRehearsal({
  stage: 'dev',
  port: Number(process.env['PORT'] ?? 0),
  environment: {
    PLAT_HEARTBEAT_INTERVAL_SECONDS: '1',
    PLAT_LOG_LEVEL: 'warn',
    PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: '30',
    PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: '600',
    PLAT_LIMIT_SETUP_PER_MINUTE: '600',
    PLAT_LIMIT_REFRESH_PER_MINUTE: '600',
    PLAT_LIMIT_ENROLL_PER_MINUTE: '600',
    PLAT_LIMIT_BATCH_PER_MINUTE: '600',
    PLAT_LIMIT_API_PER_MINUTE: '60000',
    PLAT_LIMIT_API_BURST: '5000',
  },
  functionsDir,
  onOutput: (name, text) => process.stderr.write(`${name}: ${text}`),
  log: (message, details) => console.error(message, details),
  onStep: (step) => console.log(step),
})
console.log('gateway', rehearsal.url)
console.log('TOKEN', await rehearsal.initialAdminToken())
process.on('SIGUSR2', () => {
  const { gate } = rehearsal.cloud
  for (const { name, statements } of rehearsal.functions)
    for (const s of statements)
      if (!gate.used.get(name)?.has(s)) console.log('UNUSED', name, s.Action.join(','), s.Resource[0])
  console.log('DENIED', new Set(gate.denials.map((d) => `${d.name} ${d.demand.action} ${d.demand.resource}`)))
})
process.on('SIGTERM', () => void rehearsal[Symbol.asyncDispose]().then(() => process.exit(0)))
