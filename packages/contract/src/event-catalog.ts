import * as z from 'zod'
import { eventDescriptions, type EventName, eventNames, eventSchemas } from './event.ts'

/** The response of `GET /events/catalog`. It is constant for a release. */
export const eventCatalog = () => ({
  items: eventNames.map((name) => ({
    type: `platform.${name}`,
    description: eventDescriptions[name],
    schema: schemaOf(name),
  })),
})

// Additional properties are allowed, because a later release may add members to the data.
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
