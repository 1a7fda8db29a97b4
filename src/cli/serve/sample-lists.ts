// The words that sample contacts are made of. `name|latin` has the spelling for an e-mail address.

export interface People {
  readonly given: readonly string[]
  readonly family: readonly string[]
}

/** Names that go together, by place. */
export const PEOPLE: readonly People[] = [
  people('Ada Grace Oliver Hazel Miles', 'Whitfield Harper Ashdown Marlowe Penrose'),
  people('Zoë Élodie François Amélie Étienne', 'Lefèvre Beaumont Noël Rivière Desrosiers'),
  people('美咲|misaki 陽翔|haruto 結衣|yui 蓮|ren', '佐藤|sato 高橋|takahashi 渡辺|watanabe 小林|kobayashi'),
  people('José Lucía Íñigo Begoña Andrés', 'Muñoz Ibáñez Peña Gutiérrez Castaño'),
  people('Amara Chidi Ngozi Tunde Folasade', 'Okafor Adeyemi Balogun Eze Nwosu'),
  people('Jürgen Käthe Sören Friederike Jörg', 'Müller Groß|gross Schäfer Köhler Böttcher'),
  people(
    'Ольга|olga Дмитрий|dmitri Світлана|svitlana Тарас|taras',
    'Иванова|ivanova Коваль|koval Мельник|melnyk',
  ),
  people(
    'Łucja|lucja Paweł|pawel Małgorzata|malgorzata Zbigniew',
    'Wójcik Dąbrowska Żukowski Łukasik|lukasik',
  ),
  people('ليلى|layla يوسف|yusuf مريم|maryam كريم|karim', 'حداد|haddad منصور|mansour الخطيب|alkhatib'),
  people(
    'Søren|soren Åse Bjørn|bjorn Ingrid Freja',
    'Ødegård|odegard Lindqvist Bjørnstad|bjornstad Håkansson',
  ),
  people('अनन्या|ananya रोहन|rohan मीरा|meera अर्जुन|arjun', 'शर्मा|sharma वर्मा|varma अय्यर|iyer'),
  people('João Inês Tomé Conceição Davi', 'Gonçalves Araújo Simões Brandão Leitão'),
  people(
    'Ελένη|eleni Γιώργος|giorgos Σοφία|sofia Νίκος|nikos',
    'Παπαδάκης|papadakis Γεωργίου|georgiou Νικολάου|nikolaou',
  ),
  people('Ayşe Çağla|cagla İbrahim|ibrahim Işıl|isil Kerem', 'Yıldız|yildiz Öztürk Şahin Doğan'),
  people('민준|minjun 서연|seoyeon 지우|jiwoo 하은|haeun', '김|kim 박|park 최|choi 정|jung'),
  people('Mere Wiremu Aroha Tāne Hine', 'Ngata Parata Tūhoe Rangihuna Kīngi'),
  people('Nguyệt|nguyet Thảo Đức|duc Hương Quân', 'Trần Phạm Hoàng Đặng|dang Bùi'),
  people('Jana Ondřej Šárka Vojtěch Ludmila', 'Dvořáková Černý Růžička Němec Havlíček'),
  people('שרה|sara אורי|uri נועה|noa איתן|eitan', 'כהן|cohen לוי|levi ברק|barak'),
  people('Siobhán Eoin Caoimhe Pádraig Niamh', "O'Sullivan Byrne Gallagher Doyle Kinsella"),
  people('秀英|xiuying 伟|wei 芳|fang 思远|siyuan', '王|wang 李|li 张|zhang 陈|chen'),
  people('Wanjiru Otieno Achieng Kamau Njeri', 'Mwangi Odhiambo Kiprop Wambui Mutua'),
]

/** Reserved for examples. */
export const DOMAINS: readonly string[] = ['example.org', 'example.com', 'example.net']

/** Numbers kept free for fiction: North America, Britain, Ireland, France, Germany, Australia, Sweden. */
export const PHONES: readonly string[] = [
  '+1 202 555 01##',
  '+1 416 555 01##',
  '+44 20 7946 0###',
  '+44 161 496 0###',
  '+353 20 911 ####',
  '+33 1 99 00 ## ##',
  '+33 6 39 98 ## ##',
  '+49 30 23125 ###',
  '+49 89 99998 ###',
  '+61 2 5550 ####',
  '+46 8 465 004 ##',
]

export const NOTES: readonly string[] = [
  'Prefers to be called in the morning.',
  'Met at the book fair; interested in maps.',
  'Speaks four languages, two of them fluently.',
  'Please send letters to the office, not to the house.',
  'Asked for the catalogue of next spring.\nRemind in March.',
  'Out of town every second week.',
  'Always pays early. 👍',
]

function people(given: string, family: string): People {
  return { given: given.split(' '), family: family.split(' ') }
}

export const COMPANIES = [
  {
    code: 'NORD',
    name: 'Nordlicht Optik',
    addresses: [
      { street: 'Hafenstraße 12', city: 'Kiel', country: 'Deutschland' },
      { street: 'Rue du Phare 3', city: 'Genève', country: 'Suisse' },
    ],
  },
  {
    code: 'TERRA',
    name: 'Terracotta & Filhos',
    addresses: [{ street: 'Travessa do Olival 7', city: 'Évora', country: 'Portugal' }],
  },
  {
    code: 'BRIDGE',
    name: 'Bridgewater Instruments',
    addresses: [
      { street: '18 Mill Lane', city: 'Leeds', country: 'United Kingdom' },
      { street: '2 Quay Street', city: 'Cork', country: 'Ireland' },
    ],
  },
  {
    code: 'SAKURA',
    name: '桜工房',
    addresses: [{ street: '本町 4-2', city: '金沢', country: '日本' }],
  },
] as const

export const CIRCLES = [{ name: 'Customers' }, { name: 'Suppliers' }, { name: 'Press' }] as const
