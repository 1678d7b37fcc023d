import { token } from '@platform/modules'

/** Response of `GET /api/hello`. */
export interface Greeting {
  message: string
  moduleId: string
  moduleVersion: string
  /** ISO 8601, UTC. */
  timestamp: string
}

export interface Greeter {
  greeting: string
  greet: (module: { id: string; version: string }) => Greeting
}

export const Greeter = token<Greeter>('greeter')

const greeting = 'Hello, World!'

export const greeter = (): Greeter => ({
  greeting,
  greet: ({ id, version }) => ({
    message: greeting,
    moduleId: id,
    moduleVersion: version,
    timestamp: new Date().toISOString(),
  }),
})
