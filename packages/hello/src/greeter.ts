import { token } from '@platform/modules'

/** Answer of `GET /api/hello`. */
export interface Greeting {
  message: string
  moduleId: string
  moduleVersion: string
  /** ISO 8601, UTC. */
  timestamp: string
}

/** Greets on behalf of a module. */
export interface Greeter {
  greeting: string
  greet: (module: { id: string; version: string }) => Greeting
}

export const Greeter = token<Greeter>('greeter')

const greeting = 'Hello, World!'

/** The one way to greet that there is. */
export const greeter = (): Greeter => ({
  greeting,
  greet: ({ id, version }) => ({
    message: greeting,
    moduleId: id,
    moduleVersion: version,
    timestamp: new Date().toISOString(),
  }),
})
