import { type ApiDocument, jsonSchemaOf, type Operation, type Parameter, type Schema } from '../docs/document.ts'
import { accessTexts } from './texts/access.ts'
import { common } from './texts/common.ts'
import { eventTexts } from './texts/events.ts'
import { fleetTexts } from './texts/fleet.ts'
import { platformTexts } from './texts/platform.ts'
import { relayTexts } from './texts/relay.ts'
import type { Text } from './texts/text.ts'
import { workTexts } from './texts/work.ts'

// These texts are not in the schemas, because the functions would load them.
const tables = [accessTexts, eventTexts, fleetTexts, platformTexts, relayTexts, workTexts]

/** Owner and property, such as `Cluster name` → text. */
const textByName = new Map<string, Text>(
  tables.flatMap((table) =>
    Object.entries(table).flatMap(([owners, members]) =>
      owners
        .split(' ')
        .flatMap((owner) => Object.entries(members).map(([name, text]) => [`${owner} ${name}`, text] as const)),
    ),
  ),
)

const owners = new Set([...textByName.keys()].map((key) => key.split(' ')[0] ?? ''))

type DescribedSchema = Pick<Schema, '$ref' | 'description' | 'example' | 'examples'>

/** Adds descriptions and examples that the schemas of a document lack. */
export class Describer {
  readonly #unusedTexts = new Set(textByName.keys())

  /** Keys of the texts that have no property, or whose property has another description. */
  get unusedTexts(): string[] {
    return [...this.#unusedTexts]
  }

  describeDocument({ components, paths, webhooks = {} }: ApiDocument): void {
    for (const [name, schema] of Object.entries(components.schemas)) {
      // A copy for responses has the texts of its original.
      this.describeSchema(schema, owners.has(name) ? name : name.replace(/Output$/, ''))
    }
    for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
      if (operation) this.#describeOperation(operation)
    }
    for (const [type, { post }] of Object.entries(webhooks)) {
      const [, event] = jsonSchemaOf(post.requestBody?.content)?.allOf ?? []
      if (event?.properties?.['data']) this.describeSchema(event.properties['data'], type.replace('platform.', ''))
    }
  }

  /** Describes a schema, its properties and those of nested schemas that have no name. */
  describeSchema(schema: Schema, owner: string, path: readonly string[] = []): void {
    if (path.length === 0) this.#fill(schema, textByName.get(`${owner} `), `${owner} `)
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (property === undefined) continue
      const inner = [...path, name]
      this.#describeMember(property, owner, inner)
      this.describeSchema(property, owner, inner)
    }
    const { items, anyOf = [] } = schema
    for (const inner of items ? [items, ...anyOf] : anyOf) if (path.length > 0) this.describeSchema(inner, owner, path)
  }

  #describeOperation({ operationId, parameters = [], requestBody, responses }: Operation): void {
    for (const parameter of parameters) if ('name' in parameter) this.#describeParameter(parameter, operationId)
    const contents = [
      requestBody?.content,
      ...Object.values(responses).map((one) => ('$ref' in one ? {} : one.content)),
    ]
    for (const media of contents.flatMap((content) => Object.values(content ?? {})))
      if (media?.schema !== undefined) this.describeSchema(media.schema, operationId)
  }

  #describeParameter(parameter: Parameter, operationId: string): void {
    this.#describeMember(parameter.schema, operationId, [parameter.name])
    const { description = parameter.description } = parameter.schema
    if (description !== undefined) Object.assign(parameter, { description })
  }

  #describeMember(member: DescribedSchema, owner: string, path: readonly string[]): void {
    const key = `${owner} ${path.join('.')}`
    const text = textByName.get(key)
    this.#fill(member, text ?? common[path.at(-1) ?? ''], text === undefined ? undefined : key)
  }

  #fill(target: DescribedSchema, text: Text | undefined, key: string | undefined): void {
    if (text === undefined) return
    const [description, example] = typeof text === 'string' ? [text] : text
    if (description !== undefined) target.description ??= description
    if (description === undefined || target.description === description) this.#unusedTexts.delete(key ?? '')
    // A reference shows the example of its component.
    if (example !== undefined && target.$ref === undefined && target.examples === undefined) target.example ??= example
  }
}
