/** One attribute as it travels: `{ S: 'text' }`, `{ N: '1.5' }`, `{ M: { … } }`. */
export interface AttributeValue {
  S?: string
  N?: string
  B?: string
  BOOL?: boolean
  NULL?: boolean
  SS?: string[]
  NS?: string[]
  BS?: string[]
  L?: AttributeValue[]
  M?: Item
}

export type Item = Record<string, AttributeValue>

export interface KeySchemaElement {
  AttributeName: string
  KeyType: 'HASH' | 'RANGE'
}

export interface AttributeDefinition {
  AttributeName: string
  AttributeType: 'S' | 'N' | 'B'
}

export interface SecondaryIndex {
  IndexName: string
  KeySchema: KeySchemaElement[]
  Projection: { ProjectionType: 'ALL' | 'INCLUDE' | 'KEYS_ONLY'; NonKeyAttributes?: string[] }
  IndexStatus?: 'CREATING' | 'ACTIVE' | 'DELETING'
}

/** What DescribeTable shows; the fields this stand-in itself acts on are spelt out. */
export interface TableDescription {
  TableName: string
  TableId: string
  TableStatus: 'CREATING' | 'ACTIVE' | 'UPDATING' | 'DELETING'
  KeySchema: KeySchemaElement[]
  AttributeDefinitions: AttributeDefinition[]
  GlobalSecondaryIndexes?: SecondaryIndex[]
  LocalSecondaryIndexes?: SecondaryIndex[]
  DeletionProtectionEnabled?: boolean
  TableArn?: string
  [field: string]: unknown
}

export interface TimeToLive {
  attribute: string
  status: 'ENABLING' | 'ENABLED'
}

/** A table as stored: its public description, and its expiry setting. */
export interface StoredTable {
  description: TableDescription
  timeToLive?: TimeToLive
}

/** JSON of a request or an answer. A field has the type that its reader, having checked it, gives it. */
export type Input = Record<string, any>

/** The capacity a call used, whatever the client asked to be told. */
export interface Usage {
  readUnits: number
  writeUnits: number
}
