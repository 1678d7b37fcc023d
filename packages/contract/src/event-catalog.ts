import * as z from 'zod'
import { eventDescriptions, eventNames, eventSchemas } from './event.ts'

/** Returns the response of `GET /events/catalog`. */
export const eventCatalog = () => ({
  items: eventNames.map((name) => ({
    type: `platform.${name}`,
    description: eventDescriptions[name],
    schema: openSchemaOf(eventSchemas[name]),
  })),
})

/** Returns the JSON Schema of a payload. It allows additional properties, because a later release may add members. */
export const openSchemaOf = (schema: z.ZodObject): Record<string, unknown> =>
  z.toJSONSchema(schema, {
    io: 'input',
    reused: 'inline',
    override: ({ jsonSchema }) => {
      const { example } = jsonSchema
      if (example !== undefined) jsonSchema.examples = [example]
      delete jsonSchema['example']
      delete jsonSchema.id
    },
  })
