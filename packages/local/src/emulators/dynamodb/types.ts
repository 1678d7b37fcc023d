/** Attribute in wire format: `{ S: 'text' }`, `{ N: '1.5' }`, `{ M: { … } }`. */
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
  IndexStatus?: 'ACTIVE'
}

/** Result of DescribeTable; declares the fields that the emulator itself uses. */
export interface TableDescription {
  TableName: string
  TableId: string
  TableStatus: 'CREATING' | 'ACTIVE' | 'DELETING'
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

export interface StoredTable {
  description: TableDescription
  timeToLive?: TimeToLive
}

/** JSON of a request or a response. */
export type Input = Record<string, any>

/** Capacity that a call consumed, recorded even if the client did not request `ConsumedCapacity`. */
export interface Usage {
  readUnits: number
  writeUnits: number
}
