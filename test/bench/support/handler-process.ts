import type { GatewayEvent } from '@platform/http/request'
import type { GatewayHandler } from '@platform/http/response'

export interface HandlerTask {
  module: string
  events: GatewayEvent[]
}

export interface HandlerResult {
  cpuMicroseconds: number
  bodyBytes: number
}

async function run({ module, events }: HandlerTask): Promise<HandlerResult> {
  const { handler }: { handler: GatewayHandler } = await import(module)
  let bodyBytes = 0
  const usageBefore = process.cpuUsage()
  for (const event of events) {
    const { statusCode, body } = await handler(event)
    if (statusCode >= 300) throw new Error(`${module} responded ${statusCode}: ${body}`)
    bodyBytes += body.length
  }
  const { user, system } = process.cpuUsage(usageBefore)
  return { cpuMicroseconds: user + system, bodyBytes }
}

process.on('message', (task: HandlerTask) => void run(task).then((result) => process.send?.(result)))
