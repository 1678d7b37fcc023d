import { fork } from 'node:child_process'
import { once } from 'node:events'

/** DynamoDB, SQS and Secrets Manager in a process of their own: what they do does not count as a function's work. */
export interface StandIns extends AsyncDisposable {
  /** What an SDK needs to reach them. */
  environment: Record<string, string>
}

const program = new URL('../../support/emulators-process.ts', import.meta.url)

export async function startStandIns(): Promise<StandIns> {
  const child = fork(program, { execArgv: [] })
  const [endpoints]: Record<string, string>[] = await once(child, 'message')
  const environment = {
    ...endpoints,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'bench',
  }
  const stop = async () => {
    child.disconnect()
    await once(child, 'exit')
  }
  return { environment, [Symbol.asyncDispose]: stop }
}
