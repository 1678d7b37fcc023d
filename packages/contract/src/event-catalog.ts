import * as z from 'zod'
import { eventDescriptions, type EventName, eventNames, eventSchemas } from './event.ts'

/** The response of `GET /events/catalog`, created at build time. */
export const eventCatalog = () => ({
  items: eventNames.map((name) => ({
    type: `platform.${name}`,
    description: eventDescriptions[name],
    schema: schemaOf(name),
  })),
})

/** JSON Schema of the data. Additional properties are allowed: a later release may add members. */
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
