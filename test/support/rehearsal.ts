import { inject } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { connect, type Platform } from '../conformance/support/platform.ts'
import { type Simulator, startSimulator } from '../simulator/simulator.ts'

/** A deployment of this checkout, rehearsed and set up, whose clocks run when they are told to. */
export interface Stage extends AsyncDisposable {
  rehearsal: Simulator
  api: Platform
  /** Runs a function of a clock, by its name in the contract. */
  tick: (name: string) => Promise<void>
  /** What functions have written. */
  lines: string[]
}

/** The administrator of the rehearsed platform. */
const options = { isLocal: true, username: 'ada', password: 'correct horse battery' }

export async function startStage(environment: Record<string, string> = {}): Promise<Stage> {
  await using parts = new AsyncDisposableStack()
  const lines: string[] = []
  const rehearsal = parts.use(
    await startSimulator({
      stage: 'dev',
      port: 0,
      environment: { PLAT_LOG_LEVEL: 'warn', ...environment },
      functionsDir: inject('functionsDir'),
      hasClocks: false,
      onOutput: (name, text) => lines.push(`${name}: ${text}`),
      log: (message, details) => lines.push(`${message} ${JSON.stringify(details)}`),
    }),
  )
  const initialAdminToken = await rehearsal.initialAdminToken()
  const api = await connect({ ...options, baseUrl: rehearsal.url, initialAdminToken })
  const body = {
    platformName: 'Rehearsal',
    publicUrl: 'https://platform.example.com',
    timezone: 'Europe/Berlin',
    adminUsername: options.username,
    adminEmail: 'ada@example.com',
    adminPassword: options.password,
    initialAdminToken,
  }
  answered(await api.anonymous.post('/api/v1/setup/complete', body), 200)
  const nameOf = (name: string) => rehearsal.functions.find((each) => each.name === name)?.functionName ?? name
  const started = parts.move()
  return {
    rehearsal,
    api,
    tick: (name) => rehearsal.tick(nameOf(name)),
    lines,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}
