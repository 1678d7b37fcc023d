import * as z from 'zod'
import { eventDescriptions, eventNames, eventSchemas } from './event.ts'

/** The response of `GET /events/catalog`. It is constant for a release. */
export const eventCatalog = () => ({
  items: eventNames.map((name) => ({
    type: `platform.${name}`,
    description: eventDescriptions[name],
    schema: openSchemaOf(eventSchemas[name]),
  })),
})

/** The JSON Schema of a payload. It allows additional properties, because a later release may add members. */
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
