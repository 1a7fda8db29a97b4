export interface SystemModels {
  'verso.auth.User': {
    read: { readonly id: number; readonly version: number; readonly username: string; readonly name: string | null }
    create: never
    update: never
    reference: { readonly id: number; readonly $version: number; readonly name: string | null }
    list: 'username' | 'name'
    one: {}
    many: {}
    files: never
  }
}
