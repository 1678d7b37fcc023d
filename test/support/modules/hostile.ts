import { defineModule, serve } from '@platform/modules'
import type { HostileParts } from '../portal/hostile.ts'

/** Arguments: the payloads as JSON, the module id, and `fails` to make the module fail with payloads in its error. */
const [parts = '', id = 'hostile', failure] = process.argv.slice(2)
const { slots, jobs, checks, lines }: HostileParts = JSON.parse(parts)

await serve(
  defineModule({
    id,
    version: '1.0.0',
    ...(failure === undefined && { slots }),
    healthChecks: Object.fromEntries(
      checks.map(({ name, description }) => [
        name,
        { tags: ['informational'], check: () => ({ status: 'Degraded', description }) },
      ]),
    ),
    jobs: Object.fromEntries(jobs.map(({ id, ...job }) => [id, { ...job, run: () => undefined }])),
    configure() {
      if (failure === 'fails') throw new Error(lines.join(' '))
    },
    routes(app) {
      app.get(`/modules/${id}`, (c) => c.html('<!doctype html><html lang="en"><title>Hostile</title><h1>Hostile</h1>'))
    },
  }),
)
