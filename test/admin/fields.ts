// Fields of an invented model, as the web application describes them.
import type { FieldInfo, FieldKind } from '../../admin/service/model-info.js'

export function makeField(name: string, kind: FieldKind, more: Partial<FieldInfo> = {}): FieldInfo {
  return {
    name,
    kind,
    title: name,
    help: '',
    choices: undefined,
    isRequired: false,
    isReadonly: false,
    isComputed: false,
    isSecret: false,
    isWriteOnly: false,
    isSystem: false,
    isName: false,
    isUnique: false,
    minSize: undefined,
    maxSize: undefined,
    precision: undefined,
    scale: undefined,
    defaultValue: undefined,
    isNowByDefault: false,
    target: undefined,
    targetName: undefined,
    mappedBy: undefined,
    ...more,
  }
}

export const COMPANY_FIELDS = [
  makeField('name', 'string'),
  makeField('notes', 'text'),
  makeField('owner', 'reference', { target: 'crm.Contact', targetName: 'fullName' }),
  makeField('tags', 'links', { target: 'crm.Tag', targetName: 'name' }),
  makeField('addresses', 'owned-list', { target: 'crm.Address', targetName: 'city', mappedBy: 'company' }),
]
