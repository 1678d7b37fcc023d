import { fork } from 'node:child_process'
import { once } from 'node:events'

/** Starts the stand-ins once per test run; workers reach them by the endpoints that the SDK reads. */
export async function setup(): Promise<() => Promise<void>> {
  const child = fork(new URL('stand-ins-process.ts', import.meta.url).pathname, { execArgv: [] })
  const [endpoints] = (await once(child, 'message')) as [Record<string, string>]
  Object.assign(process.env, endpoints, {
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  })
  return async () => {
    child.disconnect()
    await once(child, 'exit')
  }
}
