import { defineModule, serve } from '@platform/modules'
import type { HostileParts } from '../portal/hostile.ts'

/** Whatever it says of itself is hostile: the words are its first argument. Asked to fail, it does so in such words, too. */
const [words = '', id = 'hostile', how] = process.argv.slice(2)
const { slots, jobs, checks, lines }: HostileParts = JSON.parse(words)

await serve(
  defineModule({
    id,
    version: '1.0.0',
    ...(how === undefined && { slots }),
    healthChecks: Object.fromEntries(
      checks.map(({ name, description }) => [
        name,
        { tags: ['informational'], check: () => ({ status: 'Degraded', description }) },
      ]),
    ),
    jobs: Object.fromEntries(jobs.map(({ id, ...job }) => [id, { ...job, run: () => undefined }])),
    configure() {
      if (how === 'fails') throw new Error(lines.join(' '))
    },
    routes(app) {
      app.get(`/modules/${id}`, (c) => c.html('<!doctype html><html lang="en"><title>Hostile</title><h1>Hostile</h1>'))
    },
  }),
)
