import * as z from 'zod'
import { eventDescriptions, type EventName, eventNames, eventSchemas } from './event.ts'

/** The catalog of events as `GET /events/catalog` answers it. Made at build time: a function only hands it out. */
export const eventCatalog = () => ({
  items: eventNames.map((name) => ({
    type: `platform.${name}`,
    description: eventDescriptions[name],
    schema: schemaOf(name),
  })),
})

/** JSON Schema as its validators know it. Left open: a later release may add members. */
const schemaOf = (name: EventName) =>
  z.toJSONSchema(eventSchemas[name], {
    io: 'input',
    reused: 'inline',
    override: ({ jsonSchema }) => {
      const { example } = jsonSchema
      if (example !== undefined) jsonSchema.examples = [example]
      delete jsonSchema['example']
      delete jsonSchema.id
    },
  })
