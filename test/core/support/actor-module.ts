import { defineModule, serve } from '@platform/modules'

/**
 * A module with configurable behaviour: permanently by its first argument, temporarily by `POST /api/<id>/be`.
 * `GET /api/<id>/seen` returns its hooks, events and jobs so far.
 */
export interface ActorPlan {
  id: string
  version: string
  /** The id in the code, if it differs. */
  codeId?: string
  subscribes?: string[]
  /** Intervals of background jobs in seconds, by name. */
  jobs?: Record<string, number>
  throwsIn?: 'configure' | 'start' | 'stop'
  /** A URL that configure requests; configure throws for a status of 400 or more. */
  asks?: string
  configureMs?: number
}

export interface ModuleBehaviour {
  alive?: 'yes' | 'no' | 'hangs'
  status?: 'Healthy' | 'Degraded' | 'Unhealthy'
  jobs?: 'run' | 'throw' | 'hang'
  /** How its handlers fail for events with this subject. */
  events?: { subject: string; how: 'throw' | 'exit' | 'hang' }
}

const plan: ActorPlan = JSON.parse(process.argv[2] ?? '')
const { id, version, codeId = id, subscribes = [], jobs = {}, throwsIn, asks, configureMs = 0 } = plan
let behaviour: ModuleBehaviour = {}
const seen = { hooks: [] as string[], events: [] as object[], jobs: [] as string[] }
const hang = () => new Promise<void>((resolve) => setTimeout(resolve, 2 ** 31 - 1))

const runHook = (hook: string): void => {
  seen.hooks.push(hook)
  console.log(`hook ${hook} ${process.hrtime.bigint()}`)
  if (throwsIn === hook) throw new Error(`It throws in ${hook}.`)
}

await serve(
  defineModule({
    id: codeId,
    version,
    healthChecks: { behaviour: { tags: ['critical'], check: () => ({ status: behaviour.status ?? 'Healthy' }) } },
    jobs: Object.fromEntries(
      Object.entries(jobs).map(([job, intervalSeconds]) => [
        job,
        {
          description: 'A background job.',
          intervalSeconds,
          run: async ({ eventBus }) => {
            seen.jobs.push(job)
            if (behaviour.jobs === 'throw') throw new Error('The job throws.')
            if (behaviour.jobs === 'hang') await hang()
            await eventBus.publish(`module.${codeId}.worked`, { job })
          },
        },
      ]),
    ),
    async configure({ eventBus }) {
      await new Promise((resolve) => setTimeout(resolve, configureMs))
      runHook('configure')
      if (asks !== undefined && !(await fetch(asks)).ok) throw new Error('It throws in configure.')
      for (const type of subscribes) {
        eventBus.subscribe(type as any, async (event) => {
          if (behaviour.events?.subject === event.subject) {
            if (behaviour.events.how === 'exit') process.exit(7)
            if (behaviour.events.how === 'hang') await hang()
            throw new Error('The handler throws.')
          }
          seen.events.push(event)
          await eventBus.publish(`module.${codeId}.heard`, { type: event.type }, { subject: event.subject })
        })
      }
      await eventBus.publish(`module.${codeId}.configured`, {})
    },
    start: () => runHook('start'),
    stop: () => runHook('stop'),
    routes(app) {
      app.get(`/api/${id}/alive`, async (c) => {
        if (behaviour.alive === 'hangs') await hang()
        return c.text('', behaviour.alive === 'no' ? 500 : 200)
      })
      app.get(`/api/${id}/seen`, (c) => c.json(seen))
      app.post(`/api/${id}/be`, async (c) => {
        behaviour = { ...behaviour, ...(await c.req.json()) }
        return c.json(behaviour)
      })
      app.post(`/api/${id}/exit`, () => process.exit(9))
    },
  }),
)
